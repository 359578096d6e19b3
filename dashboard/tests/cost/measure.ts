import { expect, type Page } from '@playwright/test';

import { live } from '../browse.ts';

/** How long each page stays open. */
export const SECONDS = Number(process.env['SECONDS_OPEN'] ?? 60);
export const PATHS = ['/', '/gpus', '/jobs', '/queue'];

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
  const before = await heap();
  await page.waitForTimeout(SECONDS * 1000);
  await live(page);
  const told = await page.evaluate(() => (window as unknown as { told: Told }).told);
  const after = await heap();
  console.log(
    [
      path,
      `Chromium ${page.context().browser()?.version() ?? ''}`,
      `first paint after ${Math.round(paint)} ms, its content after ${shown} ms`,
      `longest task ${Math.round(told.longest)} ms, ${told.over200} over 200 ms in ${SECONDS} s`,
      `heap ${before.toFixed(1)} to ${after.toFixed(1)} MiB`,
    ].join(' · '),
  );
  expect(after).toBeGreaterThan(0);
}
