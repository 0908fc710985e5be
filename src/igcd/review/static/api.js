// Talks to the server. Whatever it refuses, it says why in a sentence.

export class Refusal extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
    this.isConflict = status === 409;
  }
}

async function answerOf(request) {
  let response;
  try {
    response = await request;
  } catch {
    throw new Refusal(0, "the server does not answer; start `igcd review` again, what you decided is saved");
  }
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    // the sentence below says it
  }
  if (!response.ok || answer === null) {
    throw new Refusal(response.status, answer?.error ?? `the server failed (${response.status}); reload the page`);
  }
  return answer;
}

export const get = (path) => answerOf(fetch(`/api/${path}`, { headers: { Accept: "application/json" } }));

// An answer of bytes; a refusal is a sentence all the same.
export async function getBytes(path) {
  let response;
  try {
    response = await fetch(`/api/${path}`);
    if (response.ok) return await response.arrayBuffer();
  } catch {
    // the sentence below says it
  }
  return answerOf(response ?? Promise.reject(new TypeError()));
}

export const post = (path, body) =>
  answerOf(
    fetch(`/api/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    }),
  );
