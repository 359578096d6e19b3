import { fileURLToPath } from 'node:url';

import type { Page } from '@playwright/test';

import { control, expect, open, test, tokenFor } from '../browse.ts';

const FOLDER =
  process.env['PICTURES'] ??
  fileURLToPath(new URL('../../../docs/pictures/dashboard', import.meta.url));
const TALLEST = 2200;
const WIDE = { width: 1440, height: 900 };
const NARROW = { width: 390, height: 844 };

type Screen = readonly [scheme: 'light' | 'dark', size: { width: number; height: number }];
const ALL: readonly Screen[] = [
  ['light', WIDE],
  ['dark', WIDE],
  ['light', NARROW],
  ['dark', NARROW],
];
const FEW: readonly Screen[] = [
  ['light', WIDE],
  ['dark', NARROW],
];

interface Shown {
  readonly name: string;
  readonly path: string;
  readonly world?: string;
  readonly screens: readonly Screen[];
  /** When the screen has its size. */
  readonly last?: (page: Page) => Promise<void>;
  readonly before?: (page: Page, token: string) => Promise<void>;
}

const compare = new URLSearchParams({
  a: 'vision/GPUJob/bert-finetune',
  b: 'speech/GPUJob/tts-train',
});

const PAGES: readonly Shown[] = [
  { name: 'overview', path: '/', screens: ALL },
  { name: 'gpus', path: '/gpus', screens: ALL },
  { name: 'gpus-memory', path: '/gpus?colour=memory&group=rack', screens: FEW },
  { name: 'gpus-heat', path: '/gpus?colour=heat', screens: FEW },
  { name: 'gpus-projects', path: '/gpus?group=project', screens: FEW },
  { name: 'gpus-1000', path: '/gpus', world: 'large', screens: ALL, last: pointAtGpu },
  { name: 'device', path: '/gpus/dell-1/1', screens: FEW },
  { name: 'queue', path: '/queue', screens: ALL, before: askWhatIf },
  { name: 'jobs', path: '/jobs', screens: ALL },
  { name: 'job', path: '/jobs/vision/GPUJob/bert-finetune', screens: ALL, before: readLog },
  { name: 'job-gang', path: '/jobs/vision/GPUJob/resnet-ddp', screens: FEW },
  { name: 'compare', path: `/jobs/compare?${compare.toString()}`, screens: FEW },
  { name: 'projects', path: '/projects', screens: ALL },
  { name: 'project', path: '/projects/vision', screens: FEW },
  { name: 'sweeps', path: '/sweeps', screens: ALL },
  { name: 'sweep', path: '/sweeps/vision/hpo-sweep', screens: ALL },
  { name: 'state-no-gpus', path: '/', world: 'empty', screens: FEW },
  { name: 'state-no-jobs', path: '/', world: 'unused', screens: FEW },
  { name: 'state-not-followed', path: '/', world: 'unfollowed', screens: FEW },
  { name: 'state-silent-agents', path: '/gpus', world: 'silent', screens: FEW },
  { name: 'state-tenant', path: '/gpus', world: 'tenant', screens: FEW },
  { name: 'state-none-like-that', path: '/jobs?q=nobody', screens: FEW },
  {
    name: 'state-lost',
    path: '/queue',
    screens: FEW,
    before: (page, token) => lose(page, token, 'lost'),
  },
  {
    name: 'state-not-served',
    path: '/queue',
    screens: FEW,
    before: (page, token) => lose(page, token, 'standby'),
  },
  { name: 'state-no-right', path: '/projects/vision', screens: FEW, before: forbid },
  {
    name: 'state-gone',
    path: '/jobs/vision/GPUJob/not-there',
    screens: FEW,
    before: (page) => page.getByText('There is no such thing').waitFor(),
  },
  { name: 'state-expired', path: '/', screens: FEW, before: expire },
  {
    name: 'state-login',
    path: '/',
    world: 'nobody',
    screens: FEW,
    before: (page) => page.getByLabel('Token of the cluster').waitFor(),
  },
];

for (const shown of PAGES) {
  for (const [scheme, size] of shown.screens) {
    test(`${shown.name} ${scheme} ${size.width}`, async ({ page }) => {
      const token = tokenFor(shown.world ?? 'cluster');
      await page.clock.setFixedTime(new Date('2026-03-12T15:14:00+01:00'));
      await page.clock.resume();
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
      await page.setViewportSize(size);
      await open(page, shown.path, token);
      await (shown.before ? shown.before(page, token) : settled(page));
      await page.waitForTimeout(300);
      const tall = await page.evaluate(() => document.documentElement.scrollHeight);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(over, 'wider than the screen').toBeLessThanOrEqual(0);
      // As tall as the page, so that lists and charts draw all of it.
      await page.setViewportSize({
        width: size.width,
        height: Math.min(Math.max(tall, size.height), TALLEST),
      });
      await page.evaluate(() => scrollTo(0, 0));
      await page.mouse.move(0, 0);
      if (shown.last) await shown.last(page);
      await page.waitForTimeout(300);
      await page.screenshot({ path: `${FOLDER}/${shown.name}-${scheme}-${size.width}.png` });
    });
  }
}

async function settled(page: Page): Promise<void> {
  await page.locator('.live[data-kind="live"]').waitFor();
  await page.locator('main section').first().waitFor();
}

async function pointAtGpu(page: Page): Promise<void> {
  await page.locator('a[data-box]').nth(33).hover();
}

async function askWhatIf(page: Page): Promise<void> {
  await settled(page);
  await page.getByRole('button', { name: 'Plan' }).click();
  await page.getByText('would start at once').waitFor();
}

async function readLog(page: Page): Promise<void> {
  await settled(page);
  await page.getByRole('button', { name: 'Read it' }).click();
  await page.getByText('step 41220').waitFor();
}

async function lose(page: Page, token: string, mode: string): Promise<void> {
  await settled(page);
  await control(page, token, `mode=${mode}`);
  await page.getByRole('alert').waitFor();
}

async function forbid(page: Page, token: string): Promise<void> {
  await settled(page);
  await control(page, token, 'mode=forbidden');
  await page.getByText('You may list gpujobs').waitFor();
}

async function expire(page: Page, token: string): Promise<void> {
  await settled(page);
  await control(page, token, 'mode=expired');
  await page.getByText('This token has expired').waitFor();
}
