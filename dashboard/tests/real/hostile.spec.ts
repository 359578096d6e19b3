import { expect, test } from '../browse.ts';
import { harmed, UNHARMED } from '../harm.ts';
import { openAs, stand } from './stand.ts';

test('an image and arguments of somebody who means harm are text', async ({ page }) => {
  await openAs(page, '/jobs/guests/GPUJob/mischief');
  await expect(page.getByText(`image ${stand.evil}`)).toBeVisible();
  expect(await harmed(page)).toEqual(UNHARMED);
});

test('hyperparameters and the words of a trial that failed are text', async ({ page }) => {
  await openAs(page, '/sweeps/vision/search');
  await expect(page.getByText(`name ${stand.evil.slice(0, 40)}`).first()).toBeVisible();
  await expect(page.getByText(`exit code 3: ${stand.evil}`).first()).toBeVisible();
  expect(await harmed(page)).toEqual(UNHARMED);
});

test('lines of a log are text, read by the right of who asks', async ({ page }) => {
  await openAs(page, '/jobs/guests/GPUJob/mischief', 'guest');
  await page.getByRole('button', { name: 'Read it' }).click();
  await expect(page.locator('pre.log')).toHaveText(`first line\n${stand.evil}\nlast line\n`);
  expect(await harmed(page)).toEqual(UNHARMED);
});

test('who may not read a log is told so', async ({ page }) => {
  await openAs(page, '/jobs/vision/GPUJob/train', 'reader');
  await page.getByRole('button', { name: 'Read it' }).click();
  await expect(page.locator('main').getByRole('alert')).toContainText('cannot get');
});

for (const path of ['/', '/gpus', '/queue', '/jobs', '/projects', '/projects/guests', '/sweeps']) {
  test(`${path} has nothing of it but text`, async ({ page }) => {
    await openAs(page, path);
    await page.locator('main section').first().waitFor();
    expect(await harmed(page)).toEqual(UNHARMED);
  });
}
