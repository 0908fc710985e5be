"""The review page: a local web page to look at what was discovered, to name, merge, split and reject."""
