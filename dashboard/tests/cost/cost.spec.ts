import { control, expect, live, open, test, tokenFor } from '../browse.ts';

const SECONDS = Number(process.env['SECONDS_OPEN'] ?? 60);

interface Told {
  painted: number;
  longest: number;
  over200: number;
}

// Printed, not judged: machines differ. A hundred changes a second to 1,000 GPUs and 10,000 jobs.
for (const path of ['/', '/gpus', '/jobs', '/queue']) {
  test(`${path} with 1,000 GPUs and 10,000 jobs that change`, async ({ page, browser }) => {
    test.setTimeout((SECONDS + 60) * 1000);
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
    const token = tokenFor('moving');
    await control(page, token, ''); // makes the world, which is none of the browser's time
    const began = Date.now();
    await open(page, path, token);
    await page.locator('main section').first().waitFor();
    const shown = Date.now() - began;
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
        `Chromium ${browser.version()}`,
        `shown after ${shown} ms`,
        `longest task ${Math.round(told.longest)} ms, ${told.over200} over 200 ms in ${SECONDS} s`,
        `heap ${before.toFixed(1)} to ${after.toFixed(1)} MiB`,
      ].join(' · '),
    );
    expect(after).toBeGreaterThan(0);
  });
}
