import { expect, open, test } from '../browse.ts';
import { openAs, stand } from './stand.ts';

const OWN = [
  '/',
  '/gpus',
  '/queue',
  '/queue?whatif=quota',
  '/jobs',
  '/jobs/vision/GPUJob/train',
  '/projects',
  '/projects/vision',
  '/sweeps',
  '/sweeps/vision/search',
];
const OTHERS = [
  '/jobs/speech/GPUJob/tts',
  '/jobs/speech/Deployment/api',
  '/projects/speech',
  '/sweeps/guests/none',
  '/jobs?project=speech',
  '/queue?q=visitor',
];
const NAMES = ['mischief', 'visitor', 'tts', 'asr', 'shell', 'guests'];
// Namespaces, projects, jobs and pods of others; `whole` and `api` are words of the pages too.
const HIDDEN = /speech|guests|mischief|visitor|\btts\b|\basr\b/;

for (const path of OWN) {
  test(`${path} shows a tenant its own work, and no name of another`, async ({ page }) => {
    const told: string[] = [];
    page.on('response', (response) => {
      if (!response.url().includes('/stream'))
        void response.text().then(
          (text) => told.push(text),
          () => undefined, // it was left before it was read
        );
    });
    await openAs(page, path, 'reader');
    await expect(page.locator('.lead').first()).not.toHaveText('…');
    expect(await page.content()).not.toMatch(HIDDEN);
    for (const text of told) expect(text).not.toMatch(HIDDEN);
  });
}

for (const path of OTHERS) {
  test(`${path} is not there for a tenant`, async ({ page }) => {
    await open(page, path, stand.tokens.reader);
    await page.locator('main').waitFor();
    await expect(page.locator('main')).toContainText(
      /It may have been deleted|No job is like that|Nothing that waits is like that/,
    );
    const shown = await page.content();
    for (const name of NAMES.filter((each) => !path.includes(each))) {
      expect(shown).not.toContain(name);
    }
  });
}

test('a tenant is told what it does not see', async ({ page }) => {
  await openAs(page, '/', 'reader');
  await expect(page.getByText(/You see the work in vision;/)).toBeVisible();
  await openAs(page, '/jobs', 'reader');
  await expect(page.getByText('train', { exact: true }).first()).toBeVisible();
});

test('a device is shared with somebody whose name is not told', async ({ page }) => {
  await openAs(page, '/gpus', 'guest');
  const content = await page.content();
  expect(content).toContain('mischief');
  expect(content).not.toMatch(/\btrain\b|notebook|\btts\b|speech|vision/);
});

test('who may see no namespace is told whom to ask', async ({ page }) => {
  await open(page, '/jobs', stand.tokens.nobody);
  await page.locator('main').waitFor();
  await expect(page.locator('main')).toContainText(/no namespace|Ask an administrator/);
  expect(await page.content()).not.toMatch(/mischief|notebook|speech|vision/);
});
