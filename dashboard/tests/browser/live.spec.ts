import { violations } from '../axe.ts';
import { control, expect, live, openLive, test } from '../browse.ts';

test('a lost connection says since when, keeps what it had, and comes back by itself', async ({
  page,
}) => {
  const token = await openLive(page, '/projects');
  await control(page, token, 'mode=lost');
  await expect(page.getByRole('alert')).toHaveText(
    /^Connection lost since \d\d:\d\d\. What you see is from then\.$/,
  );
  await expect(page.getByText('16.1 of 12')).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await control(page, token, 'mode=well');
  await live(page);
  await expect(page.getByRole('alert')).toHaveCount(0);
});

test('a change of leader is told from a lost connection, and can be tried at once', async ({
  page,
}) => {
  const token = await openLive(page, '/projects');
  await control(page, token, 'mode=standby');
  await expect(page.getByRole('alert')).toContainText('Not served just now, since');
  await control(page, token, 'mode=well');
  await page.getByRole('button', { name: 'Try now' }).click();
  await live(page);
});

test('what changed is shown, and marked', async ({ page }) => {
  const token = await openLive(page, '/projects');
  await expect(page.locator('.mark')).toHaveCount(0);
  await control(page, token, 'change=quota');
  await expect(page.getByText('17.1 of 12')).toBeVisible();
  await expect(page.locator('.mark')).toHaveText('17.1');
});

test('rows keep their place while they refresh, until one asks for the new order', async ({
  page,
}) => {
  const token = await openLive(page, '/queue');
  const first = page.locator('[aria-rowindex="2"]');
  await expect(first).toContainText('asr-large');
  await control(page, token, 'change=order');
  await page.getByRole('button', { name: 'Sort anew' }).click();
  await expect(first).toContainText('slam-map');
  await expect(page.getByRole('button', { name: 'Sort anew' })).toHaveCount(0);
});

test('a page that is left lets go of its stream', async ({ page }) => {
  const token = await openLive(page, '/projects');
  for (const name of ['Queue', 'Jobs', 'GPUs', 'Sweeps']) {
    await page.getByRole('link', { name, exact: true }).first().click();
    await live(page);
  }
  await expect.poll(async () => (await control(page, token, '')).streams).toBe(1);
});
