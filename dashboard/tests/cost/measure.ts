import { expect, type Page } from '@playwright/test';

import { live } from '../browse.ts';

/** How long each page stays open. */
export const SECONDS = Number(process.env['SECONDS_OPEN'] ?? 60);
export const PATHS = (process.env['PAGES_OPEN'] ?? '/ /gpus /jobs /queue').split(' ');
/** Looks at the heap while it is open. */
const LOOKS = 12;

interface Told {
  longest: number;
  over200: number;
}

/** What an open page costs its reader, in a line. Printed, not judged: machines differ. */
export async function measured(page: Page, path: string, open: () => Promise<void>) {
  await page.addInitScript(() => {
    const told = { longest: 0, over200: 0 };
    Object.assign(window, { told });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        told.longest = Math.max(told.longest, entry.duration);
        if (entry.duration > 200) told.over200 += 1;
      }
    }).observe({ type: 'longtask', buffered: true });
  });
  const began = Date.now();
  await open();
  await page.locator('main section').first().waitFor();
  const shown = Date.now() - began;
  const paint = await page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
  );
  await page.evaluate(() =>
    Object.assign((window as unknown as { told: Told }).told, { longest: 0, over200: 0 }),
  );
  const session = await page.context().newCDPSession(page);
  const heap = async () => {
    await session.send('HeapProfiler.collectGarbage');
    return (await session.send('Runtime.getHeapUsage')).usedSize / 1024 / 1024;
  };
  const heaps = [await heap()];
  for (let look = 0; look < LOOKS; look++) {
    await page.waitForTimeout((SECONDS * 1000) / LOOKS);
    heaps.push(await heap());
  }
  await live(page);
  const told = await page.evaluate(() => (window as unknown as { told: Told }).told);
  const most = Math.max(...heaps);
  console.log(
    [
      path,
      `Chromium ${page.context().browser()?.version() ?? ''}`,
      `first paint after ${Math.round(paint)} ms, its content after ${shown} ms`,
      `longest task ${Math.round(told.longest)} ms, ${told.over200} over 200 ms in ${SECONDS} s`,
      `heap ${heaps.map((mib) => mib.toFixed(1)).join(' ')} MiB`,
      `at most ${most.toFixed(1)}, grows by ${growth(heaps).toFixed(2)} MiB an hour`,
    ].join(' · '),
  );
  expect(most).toBeGreaterThan(0);
}

/** The slope through all looks but the first, when its lists are still being filled; in an hour. */
function growth([, ...heaps]: number[]): number {
  const middle = (heaps.length - 1) / 2;
  const mean = heaps.reduce((sum, mib) => sum + mib, 0) / heaps.length;
  const both = heaps.reduce((sum, mib, at) => sum + (at - middle) * (mib - mean), 0);
  const square = heaps.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  return (both / square) * ((LOOKS * 3600) / SECONDS);
}
