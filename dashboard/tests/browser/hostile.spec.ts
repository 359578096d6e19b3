import { EVIL } from '../../mock/worlds/others.ts';
import { expect, openLive, test } from '../browse.ts';
import { harmed, UNHARMED } from '../harm.ts';

const script = '"><script>window.hit=1</script>';
const job = `/jobs/${encodeURIComponent(EVIL)}/GPUJob/${encodeURIComponent(script)}`;
const compared = new URLSearchParams({ a: `${EVIL}/GPUJob/x`, b: 'a/b/c' }).toString();

const PAGES = [
  '/',
  '/gpus',
  '/gpus?group=constructor',
  `/gpus/${encodeURIComponent(script)}/0`,
  '/queue',
  '/jobs',
  job,
  '/projects',
  `/projects/${encodeURIComponent(EVIL)}`,
  '/sweeps',
  `/sweeps/${encodeURIComponent(EVIL)}/${encodeURIComponent(script)}`,
];

for (const path of PAGES) {
  test(`${path.slice(0, 24)} shows names of people who mean harm as text`, async ({ page }) => {
    await openLive(page, path, 'hostile');
    await page.locator('main section').first().waitFor();
    expect(await harmed(page)).toEqual(UNHARMED);
    await page.setViewportSize({ width: 390, height: 844 });
    await expect
      .poll(() => page.evaluate(() => document.documentElement.scrollWidth - innerWidth))
      .toBeLessThanOrEqual(0);
  });
}

test('names are shown as they are', async ({ page }) => {
  await openLive(page, '/jobs', 'hostile');
  await expect(page.getByRole('link', { name: script })).toBeVisible();
});

test('a log is shown as it is', async ({ page }) => {
  await openLive(page, job, 'hostile');
  await page.getByRole('button', { name: 'Read it' }).click();
  await expect(page.locator('pre.log')).toContainText(EVIL);
  expect(await harmed(page)).toMatchObject({ hit: undefined, images: 0 });
});

for (const address of [
  `/jobs/compare?${compared}`,
  '/jobs/compare?a=%3Cscript%3E',
  '/%3Cscript%3E',
  '/jobs/a/b/%00',
]) {
  test(`an address made by others does nothing: ${address.slice(0, 30)}`, async ({ page }) => {
    await page.goto(`${address}#token=hostile`);
    await page.locator('main').waitFor();
    expect(await harmed(page)).toMatchObject({ hit: undefined, images: 0, scripts: 0 });
  });
}

test('a token that is none of ours after the # is a login like any other', async ({ page }) => {
  await page.goto('/#token=%E0%A4%A');
  await expect(page.getByRole('alert')).toHaveText('This token is not valid, or not any more.');
});
