import type { Page } from '@playwright/test';

let tokens = 0;

/** A token that sees a world of its own, so that tests do not disturb each other. */
export function tokenFor(world: string): string {
  tokens += 1;
  return `${world}.${process.pid}-${tokens}`;
}

/** Open a page as who has a token, as `kubectl gpu dashboard` does. */
export async function open(page: Page, path: string, token: string): Promise<void> {
  await page.goto(`${path}#token=${token}`);
}

/** Have the server be otherwise for a token. */
export async function control(
  page: Page,
  token: string,
  what: string,
): Promise<{ streams: number }> {
  const response = await page.request.get(`/mock/control?token=${token}&${what}`);
  return (await response.json()) as { streams: number };
}
