import type { Page } from '@playwright/test';

import { control, expect, live, open, openLive, test, tokenFor } from '../browse.ts';
import { kept } from '../kept.ts';

const field = (page: Page) => page.getByLabel('Token of the cluster');

test('a token after the # is taken off the address at once, and kept nowhere', async ({ page }) => {
  const token = await openLive(page, '/queue?project=vision');
  expect(page.url()).toMatch(/\/queue\?project=vision$/);
  expect(await kept(page)).not.toContain(token);
  await page.reload();
  await expect(field(page)).toBeVisible();
});

test('a pasted token logs in, and the page that was asked for opens', async ({ page }) => {
  await page.goto('/projects/vision');
  await field(page).fill(` ${tokenFor('cluster')}\n`);
  await field(page).press('Enter');
  await live(page);
  await expect(page.getByText('Who holds its GPUs')).toBeVisible();
});

test('a token that is none says so', async ({ page }) => {
  await page.goto('/');
  await field(page).fill('nobody');
  await page.getByRole('button', { name: 'Log in' }).click();
  await expect(page.getByRole('alert')).toHaveText('This token is not valid, or not any more.');
});

test('a proxy that adds the header itself needs no login', async ({ browser }) => {
  const context = await browser.newContext({
    extraHTTPHeaders: { Authorization: `Bearer ${tokenFor('cluster')}` },
  });
  const page = await context.newPage();
  await page.goto('/');
  await live(page);
  await expect(page.getByText('Where the GPUs are')).toBeVisible();
  await context.close();
});

test('a token that ends under an open page asks for another, and goes on where it was', async ({
  page,
}) => {
  const token = await openLive(page, '/jobs?phase=Failed');
  await control(page, token, 'mode=expired');
  await expect(page.getByRole('alert')).toHaveText('This token has expired.');
  await field(page).fill(tokenFor('cluster'));
  await field(page).press('Enter');
  await live(page);
  await expect(page.getByText('OOMKilled')).toBeVisible();
});

test('a token can be forgotten', async ({ page }) => {
  await openLive(page, '/');
  await page.locator('.who summary').click();
  await page.getByRole('button', { name: 'Forget my token' }).click();
  await expect(field(page)).toBeVisible();
});

test('a stand-by says that there is no leader, and the page comes by itself', async ({ page }) => {
  const token = tokenFor('cluster');
  await control(page, token, 'mode=standby');
  await open(page, '/', token);
  await expect(page.getByText('Not served just now.')).toBeVisible();
  await control(page, token, 'mode=well');
  await live(page);
});

test('no right to see anything is said, with whom to ask', async ({ page }) => {
  const token = tokenFor('cluster');
  await control(page, token, 'mode=forbidden');
  await open(page, '/jobs', token);
  await expect(page.getByText('You may list gpujobs in no namespace.')).toBeVisible();
  await expect(page.getByText('Ask an administrator')).toBeVisible();
});
