import type { Page } from '@playwright/test';

/** All that a browser keeps of a page, and its address. */
export async function kept(page: Page): Promise<string> {
  const stored = await page.evaluate(() =>
    JSON.stringify([
      Object.entries(localStorage),
      Object.entries(sessionStorage),
      document.cookie,
      location.href,
      history.state,
    ]),
  );
  return stored + JSON.stringify(await page.context().cookies());
}
