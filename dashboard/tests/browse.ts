import { expect, type Page, test as base } from '@playwright/test';

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

/** Open it, and wait until it is live. */
export async function openLive(page: Page, path: string, world = 'cluster'): Promise<string> {
  const token = tokenFor(world);
  await open(page, path, token);
  await live(page);
  return token;
}

export async function live(page: Page): Promise<void> {
  await page.locator('.live[data-kind="live"]').waitFor();
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

/**
 * A test at whose end nothing has complained: no script, no policy, and nothing has been asked of
 * another host. That an answer was an error is the browser's to tell, and no complaint.
 */
export const test = base.extend<{ quiet: undefined }>({
  quiet: [
    async ({ page }, use) => {
      const wrong: string[] = [];
      page.on('console', (message) => {
        const told = message.text();
        if (
          ['error', 'warning'].includes(message.type()) &&
          !told.startsWith('Failed to load resource')
        ) {
          wrong.push(told);
        }
      });
      page.on('pageerror', (error) => wrong.push(String(error)));
      page.on('dialog', (dialog) => wrong.push(`a dialog: ${dialog.message()}`));
      page.on('request', (request) => {
        const { protocol, hostname } = new URL(request.url());
        if (!['blob:', 'data:'].includes(protocol) && hostname !== '127.0.0.1')
          wrong.push(request.url());
      });
      await use(undefined);
      expect(wrong).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };
