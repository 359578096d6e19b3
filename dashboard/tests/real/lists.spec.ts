import { expect, live, test } from '../browse.ts';
import { openAs } from './stand.ts';

const rows = '.body > .row';

test('filters are in the address, are asked of the server, and can be gone back from', async ({
  page,
}) => {
  await openAs(page, '/jobs');
  const all = await page.locator(rows).count();
  await page.getByLabel('project').selectOption('vision');
  await expect(page).toHaveURL(/\?project=vision$/);
  await page.getByRole('button', { name: /^Failed/ }).click();
  await expect(page).toHaveURL(/\?project=vision&phase=Failed$/);
  await expect(page.locator(rows)).toHaveCount(1);
  await page.locator(rows).getByRole('link', { name: 'broken' }).click();
  await expect(page).toHaveURL(/\/jobs\/vision\/GPUJob\/broken$/);
  await page.goBack();
  await expect(page.locator(rows)).toHaveCount(1);
  await openAs(page, '/jobs?q=ddp');
  await expect(page.getByRole('searchbox')).toHaveValue('ddp');
  await expect(page.locator(rows)).toHaveCount(1);
  await openAs(page, '/jobs');
  await expect(page.locator(rows)).toHaveCount(all);
});

test('every heading that sorts asks what the server understands', async ({ page }) => {
  for (const path of ['/jobs', '/queue', '/sweeps', '/projects']) {
    await openAs(page, path);
    const count = await page.locator(rows).count();
    const headings = page.getByRole('columnheader').getByRole('button');
    for (let index = 0; index < (await headings.count()); index += 1) {
      for (let click = 0; click < 3; click += 1) {
        await headings.nth(index).click();
        await live(page);
        await expect(page.locator(rows)).toHaveCount(count);
      }
    }
  }
});

test('each link of a sentence leads to a page that is there', async ({ page }) => {
  for (const path of ['/', '/queue', '/jobs', '/projects', '/gpus']) {
    await openAs(page, path);
    const links = page.locator('.lead a');
    for (let index = 0; index < (await links.count()); index += 1) {
      await links.nth(index).click();
      await live(page);
      await expect(page.locator('.lead').first()).not.toHaveText('…');
      await page.goBack();
      await live(page);
    }
  }
});

test('those that hold GPUs idle are the notebook, by the link of the first page', async ({
  page,
}) => {
  await openAs(page, '/');
  await page.locator('.lead a[href="/jobs?idle=1"]').click();
  await expect(page).toHaveURL(/\/jobs\?idle=1$/);
  await expect(page.locator(rows)).toHaveCount(1);
  await expect(page.locator(rows)).toContainText('notebook');
});
