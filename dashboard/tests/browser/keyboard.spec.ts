import { expect, openLive, test } from '../browse.ts';

test('the first Tab offers to skip what all pages have', async ({ page }) => {
  await openLive(page, '/');
  await page.keyboard.press('Tab');
  const skip = page.getByRole('link', { name: 'Skip to what the page says' });
  await expect(skip).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.locator('main')).toBeFocused();
  expect(page.url()).not.toContain('#');
});

test('another page has the focus at its beginning, and its own title', async ({ page }) => {
  await openLive(page, '/');
  await page.getByRole('link', { name: 'Queue' }).first().press('Enter');
  await expect(page).toHaveTitle('Queue · gpu-scheduler');
  await expect(page.locator('main')).toBeFocused();
});

test('a thousand GPUs are one stop of the Tab key; arrows lead on, Enter opens', async ({
  page,
}) => {
  await openLive(page, '/gpus', 'large');
  const boxes = page.locator('a[data-box]');
  await expect(boxes).toHaveCount(1000);
  expect(await page.locator('a[data-box][tabindex="0"]').count()).toBe(1);
  await page.locator('a[data-box][tabindex="0"]').focus();
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('[data-box="gpu-001 1"]')).toBeFocused();
  await expect(page.locator('.point')).toContainText('GPU 1 of gpu-001');
  await page.keyboard.press('ArrowDown');
  await expect(page.locator('a[data-box]:focus')).not.toHaveAttribute('data-box', /gpu-001/);
  expect(await page.locator('a[data-box][tabindex="0"]').count()).toBe(1);
  await page.keyboard.press('Escape');
  await expect(page.locator('.point')).toHaveCount(0);
  await page.keyboard.press('Enter');
  await expect(page.getByText('The device')).toBeVisible();
});

test('a box says to who does not see it what it shows', async ({ page }) => {
  await openLive(page, '/gpus');
  await expect(
    page.getByRole('link', {
      name: 'GPU 1 of dell-1, used 35 % of the time, 65 °C, vit-debug 0.5 idle, tts-train 0.5, 0 free',
    }),
  ).toBeVisible();
});

test('pointing at a box shows whose it is', async ({ page }) => {
  await openLive(page, '/gpus', 'large');
  await page.locator('a[data-box]').nth(10).hover();
  await expect(page.locator('.point')).toContainText('GPU 2 of gpu-002');
  await page.locator('.lead').hover();
  await expect(page.locator('.point')).toHaveCount(0);
});
