import { readFile } from 'node:fs/promises';

import { expect, live, openLive, test } from '../browse.ts';

test('ten thousand jobs are a list of which little is drawn, to its very end', async ({ page }) => {
  await openLive(page, '/jobs', 'large');
  const table = page.getByRole('table', { name: 'jobs' });
  await expect(table).toHaveAttribute('aria-rowcount', '10001');
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await expect(page.locator('[aria-rowindex="10001"]')).toContainText(/\d+\s(d|h|min)/);
  expect(await table.getByRole('row').count()).toBeLessThan(80);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight / 2));
  await expect(page.locator('.waiting-row')).toHaveCount(0);
});

test('filters are in the address, which can be shared and gone back from', async ({ page }) => {
  await openLive(page, '/jobs');
  await page.getByRole('searchbox').fill('fold-1');
  await expect(page).toHaveURL(/\?q=fold-1$/);
  await page.getByLabel('project').selectOption('genomics');
  await page.getByRole('button', { name: /^Failed/ }).click();
  await expect(page).toHaveURL(/\?q=fold-1&project=genomics&phase=Failed$/);
  const rows = page.locator('.body > .row');
  await expect(rows).toHaveCount(1);
  await rows.getByRole('link').click();
  await expect(page).toHaveURL(/\/jobs\/genomics\/GPUJob\/fold-10$/);
  await page.goBack();
  await expect(page.getByRole('searchbox')).toHaveValue('fold-1');
  await expect(rows).toHaveCount(1);
});

test('nothing that is like that says so, and shows all again', async ({ page }) => {
  await openLive(page, '/jobs?q=nobody');
  await expect(page.getByText('No job is like that.')).toBeVisible();
  await page.getByRole('button', { name: 'Show all' }).click();
  await expect(page.getByText('bert-finetune')).toBeVisible();
});

test('a heading sorts, and says which way', async ({ page }) => {
  await openLive(page, '/jobs');
  const heading = page.getByRole('columnheader', { name: 'GPUs' });
  await heading.getByRole('button').click();
  await expect(heading).toHaveAttribute('aria-sort', 'descending');
  await expect(page.locator('[aria-rowindex="2"]')).toContainText('resnet-ddp');
  await expect(page).toHaveURL(/sort=-held/);
});

test('a list is saved whole, not only what is in sight', async ({ page }) => {
  await openLive(page, '/jobs?phase=Running', 'large');
  const total =
    Number(await page.getByRole('table', { name: 'jobs' }).getAttribute('aria-rowcount')) - 1;
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const download = await saved;
  expect(download.suggestedFilename()).toBe('jobs.csv');
  const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n');
  expect(lines.length - 1).toBe(total);
  expect(new Set(lines).size).toBe(lines.length);
});

test('the span of the chart is in the address', async ({ page }) => {
  await openLive(page, '/');
  await page.getByRole('button', { name: '7 days' }).click();
  await expect(page).toHaveURL(/\?span=7d$/);
  await expect(page.getByRole('img', { name: /GPUs over the last 7 d/ })).toBeVisible();
  await expect(page.getByText('An hour is missing').first()).toBeVisible();
});

test('what a sentence counts is a link to the rows behind it', async ({ page }) => {
  await openLive(page, '/');
  await page.getByRole('link', { name: '12 jobs' }).click();
  await live(page);
  await expect(page.locator('.body > .row')).toHaveCount(12);
});

test('every heading that sorts, and every filter, asks what the server understands', async ({
  page,
}) => {
  for (const path of ['/jobs', '/queue', '/sweeps', '/projects']) {
    await openLive(page, path);
    const headings = page.getByRole('columnheader').getByRole('button');
    for (let index = 0; index < (await headings.count()); index += 1) {
      for (let click = 0; click < 3; click += 1) {
        await headings.nth(index).click();
        await live(page);
        await expect(page.locator('.body > .row').first()).toBeVisible();
      }
    }
  }
});

test('who holds GPUs idle is a list of jobs, which can be left', async ({ page }) => {
  await openLive(page, '/');
  await page.getByRole('link', { name: 'all 9' }).click();
  await expect(page.locator('.body > .row')).toHaveCount(3);
  await page.getByRole('button', { name: /held idle/ }).click();
  await expect(page).toHaveURL(/\/jobs$/);
});

test('a link of the server to a node shows that node', async ({ page }) => {
  await openLive(page, '/gpus?node=dell-3');
  await expect(page.getByRole('heading', { level: 2 })).toHaveText([/^dell-3/]);
});
