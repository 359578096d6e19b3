import type { Page } from '@playwright/test';

/** What strings of somebody who means harm have done to a page. */
export async function harmed(page: Page): Promise<unknown> {
  return page.evaluate(() => ({
    hit: (window as unknown as { hit?: unknown }).hit,
    images: document.querySelectorAll('main img, header img').length,
    scripts: document.querySelectorAll('body script').length,
    links: [...document.querySelectorAll('a')].filter(
      (link) => !link.href.startsWith(location.origin),
    ).length,
  }));
}

export const UNHARMED = { hit: undefined, images: 0, scripts: 0, links: 0 };
