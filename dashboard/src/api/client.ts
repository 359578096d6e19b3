import { currentToken } from './token.ts';
import type { ProblemView } from './views.ts';

/** The server's no, in its own words. `status` 0: it could not be reached at all. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, words: string) {
    super(words);
    this.name = 'Refusal';
    this.status = status;
  }
}

export interface Asked {
  signal?: AbortSignal;
  body?: unknown;
  method?: 'GET' | 'POST';
}

const WORDS: Readonly<Record<number, string>> = {
  401: 'This token is not valid, or not any more.',
  403: 'You have no right to see this.',
  404: 'There is no such thing, or you may not see it.',
  503: 'no leader is there just now',
};

/**
 * What is sent with every question: the token, where there is one. A proxy may add one itself, and
 * sends who is not logged in any more to its login, but who wants JSON gets a 401.
 */
export function headers(): Record<string, string> {
  const token = currentToken();
  const accept = { Accept: 'application/json, */*' };
  return token ? { ...accept, Authorization: `Bearer ${token}` } : accept;
}

/** The refusal that an answer is. */
export async function refusal(response: Response): Promise<Refusal> {
  let words = WORDS[response.status] ?? `The server answers with ${response.status}.`;
  try {
    const problem = (await response.json()) as Partial<ProblemView>;
    if (problem.error) words = problem.error;
  } catch {
    // Not from our server, but from something before it: what we say ourselves has to do.
  }
  return new Refusal(response.status, words);
}

async function send(path: string, { signal, body, method = 'GET' }: Asked): Promise<Response> {
  const init: RequestInit = { method, headers: headers(), cache: 'no-store', redirect: 'error' };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...headers(), 'Content-Type': 'application/json' };
  }
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal(0, 'The server cannot be reached.');
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

/** Ask for a view. Throws a Refusal. */
export async function ask<T>(path: string, asked: Asked = {}): Promise<T> {
  return (await (await send(path, asked)).json()) as T;
}

/** Ask for plain text. Throws a Refusal. */
export async function askText(path: string, asked: Asked = {}): Promise<string> {
  return (await send(path, asked)).text();
}

/** Have something done. Throws a Refusal. */
export async function act(path: string): Promise<void> {
  await send(path, { method: 'POST', body: {} }); // JSON, which no form of another site can send
}
