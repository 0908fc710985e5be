"""One file per method, the same verbs: learn(stage), predict(images), state_dict()."""
