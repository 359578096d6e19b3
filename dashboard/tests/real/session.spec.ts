import type { Page } from '@playwright/test';

import { expect, live, open, test } from '../browse.ts';
import { kept } from '../kept.ts';
import { happen, openAs, stand } from './stand.ts';

const field = (page: Page) => page.getByLabel('Token of the cluster');

test('a token that expires under an open page says so, and another goes on where it was', async ({
  page,
}) => {
  const token = await happen<string>('expiring', { seconds: 20 });
  await open(page, '/jobs?phase=Failed', token);
  await live(page);
  await expect(page.getByText('broken', { exact: true })).toBeVisible();
  await expect(page.getByRole('alert')).toContainText('log in again', { timeout: 90_000 });
  expect(await page.content()).not.toContain('broken');
  await field(page).fill(stand.tokens.all);
  await field(page).press('Enter');
  await live(page);
  await expect(page).toHaveURL(/\/jobs\?phase=Failed$/);
  await expect(page.getByText('broken', { exact: true })).toBeVisible();
});

test('a token whose account is deleted ends an open page', async ({ page }) => {
  const { name, token } = await happen<{ name: string; token: string }>('account');
  await open(page, '/jobs', token);
  await live(page);
  await expect(page.getByText('train', { exact: true }).first()).toBeVisible();
  await happen('delete-account', { name });
  await expect(page.getByRole('alert')).toContainText('log in again');
  await expect(field(page)).toBeVisible();
  await open(page, '/projects', token);
  await expect(page.getByRole('alert')).toContainText('log in again');
});

test('a token that is none is refused, and one that is pasted is kept nowhere', async ({
  page,
}) => {
  await page.goto('/sweeps');
  await field(page).fill('nobody');
  await page.getByRole('button', { name: 'Log in' }).click();
  await expect(page.getByRole('alert')).toContainText('log in again');
  await field(page).fill(` ${stand.tokens.all}\n`);
  await field(page).press('Enter');
  await live(page);
  expect(await kept(page)).not.toContain(stand.tokens.all);
  expect(await page.context().cookies()).toEqual([]);
});

test('a token after the # is off the address at once', async ({ page }) => {
  await openAs(page, '/queue?project=vision');
  expect(page.url()).toMatch(/\/queue\?project=vision$/);
});
