import type { IncomingMessage, ServerResponse } from 'node:http';

import type { WhatIfQuestion } from '../src/api/views.ts';
import { sameRef } from '../src/format/job.ts';
import { ref } from './build.ts';
import { BadQuestion } from './lists.ts';
import { type Mode, type Session, sessionOf, WHY } from './session.ts';
import { view } from './views.ts';
import { whatIf } from './whatif.ts';

const API = '/api/v1';
const MODES: readonly string[] = ['well', 'lost', 'standby', 'expired', 'forbidden'];

/** Answers what is asked of the interface; false: that was something else. */
export async function answer(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  const url = new URL(request.url ?? '/', 'http://mock');
  if (url.pathname === '/mock/control') return control(url, response);
  if (!url.pathname.startsWith(`${API}/`)) return false;
  const session = sessionOf(/^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '');
  const refused = refusal(session, url.pathname);
  if (!session || refused) {
    if (refused === 'cut' || !refused) response.destroy();
    else problem(response, ...refused);
    return true;
  }
  await served(session, request, response, url);
  return true;
}

function refusal(session: Session | null, path: string): readonly [number, string] | 'cut' | null {
  if (!session) return [401, 'This token is not valid, or not any more.'];
  if (session.mode === 'well') return null;
  if (session.mode === 'forbidden' && path === `${API}/me`) return null;
  return WHY[session.mode] ?? 'cut';
}

async function served(
  session: Session,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const path = url.pathname.slice(API.length);
  const [first, ...parts] = path.split('/').filter(Boolean).map(decodeURIComponent);
  if (request.method === 'POST' && first === 'what-if') {
    const said = whatIf(session.world, JSON.parse(await body(request)) as WhatIfQuestion);
    if (typeof said === 'string') problem(response, 400, said);
    else json(response, said);
  } else if (request.method === 'POST' && first === 'jobs') {
    suspend(session, response, parts);
  } else if (first === 'stream') {
    stream(session, response, url.searchParams.get('view') ?? '');
  } else if (first === 'logs') {
    response.setHeader('Content-Type', 'text/plain; charset=utf-8');
    response.end(session.world.log);
  } else {
    const found = asked(session, response, path + url.search);
    if (found === undefined) return;
    if (found) json(response, found);
    else problem(response, 404, 'There is no such thing, or you may not see it.');
  }
}

/** A view; undefined: the question is refused, and that has been said. */
function asked(
  session: Session,
  response: ServerResponse,
  address: string,
): object | null | undefined {
  try {
    return view(session.world, address);
  } catch (error) {
    if (!(error instanceof BadQuestion)) throw error;
    problem(response, 400, error.message);
    return undefined;
  }
}

function stream(session: Session, response: ServerResponse, address: string): void {
  const found = asked(session, response, address);
  if (found === undefined) return;
  if (!found) {
    problem(response, 404, 'There is no such thing, or you may not see it.');
    return;
  }
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  session.follow(address, response);
}

function suspend(
  session: Session,
  response: ServerResponse,
  [namespace = '', name = '', verb]: string[],
): void {
  const at = session.world.jobs.findIndex((row) => sameRef(row.ref, ref(namespace, name)));
  const row = session.world.jobs[at];
  if (!row || !session.world.me.actions) {
    problem(
      response,
      row ? 403 : 404,
      row ? 'You may not patch gpujobs there.' : 'There is no such job.',
    );
    return;
  }
  const phase = verb === 'suspend' ? 'Suspended' : 'Pending';
  session.world.jobs[at] = {
    ...row,
    phase,
    reason: verb === 'suspend' ? 'Suspended' : 'WaitingForGPU',
  };
  session.changed();
  response.writeHead(204).end();
}

/** For tests: how the server is for a token from now on, or a change of its world. */
function control(url: URL, response: ServerResponse): true {
  const session = sessionOf(url.searchParams.get('token') ?? '');
  const mode = url.searchParams.get('mode') ?? '';
  if (session && MODES.includes(mode)) session.set(mode as Mode);
  if (session && url.searchParams.get('change') === 'quota') {
    session.world.projects = session.world.projects.map((row, index) =>
      index === 0 ? { ...row, held: row.held + 1 } : row,
    );
    session.changed();
  }
  if (session && url.searchParams.get('change') === 'order') {
    session.world.queue.reverse();
    session.changed();
  }
  json(response, { streams: session?.open ?? 0 });
  return true;
}

async function body(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function json(response: ServerResponse, value: unknown): void {
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(value));
}

function problem(response: ServerResponse, status: number, error: string): void {
  response.statusCode = status;
  json(response, { error });
}
