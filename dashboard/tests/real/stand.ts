import { readFileSync } from 'node:fs';

import type { Page } from '@playwright/test';

import { live, open } from '../browse.ts';

export type Who = 'all' | 'reader' | 'editor' | 'guest' | 'nobody';

interface Stand {
  base: string;
  control: string;
  secret: string;
  tokens: Record<Who, string>;
  evil: string;
}

/** As tests/dashboard/stand.py handed it over. */
export const stand = JSON.parse(
  readFileSync(process.env['DASHBOARD_STAND'] ?? '/dev/null', 'utf8'),
) as Stand;

/** Have something happen on the stand: see `Stand.actions` there. */
export async function happen<T>(what: string, asked: object = {}): Promise<T> {
  const response = await fetch(`${stand.control}/${what}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${stand.secret}` },
    body: JSON.stringify(asked),
  });
  const said: unknown = await response.json();
  if (!response.ok) throw new Error(`${what}: ${JSON.stringify(said)}`);
  return said as T;
}

/** Open a page as somebody, and wait until it is live. */
export async function openAs(page: Page, path: string, who: Who = 'all'): Promise<void> {
  await open(page, path, stand.tokens[who]);
  await live(page);
}

/** What the server says to somebody, by the same address that pages ask. */
export async function ask<T>(page: Page, path: string, who: Who = 'all'): Promise<T> {
  const response = await page.request.get(`/api/v1${path}`, {
    headers: { Authorization: `Bearer ${stand.tokens[who]}` },
  });
  if (!response.ok()) throw new Error(`${path}: ${response.status()} ${await response.text()}`);
  return (await response.json()) as T;
}
