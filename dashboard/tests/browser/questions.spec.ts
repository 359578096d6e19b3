import { expect, openLive, test } from '../browse.ts';

// What somebody who has only the browser wants to know: from the overview, by what can be clicked
// there, in at most four clicks or fields. The comments are the clicks.

test('which GPUs are wasted, and whose are they?', async ({ page }) => {
  await openLive(page, '/');
  // No click: the strip says how much, the card below whose.
  const idle = page.getByRole('region', { name: 'Held and not used' });
  await expect(idle.getByText('notebook-mk').first()).toBeVisible();
  await expect(idle.getByText('speech').first()).toBeVisible();
  // Click 1, the job: on which GPUs.
  await idle.getByRole('link', { name: 'notebook-mk' }).first().click();
  await expect(page.locator('.lead').first()).toContainText('notebook-mk');
  await expect(page.getByText('dell-2').first()).toBeVisible();
});

test('why does a job wait, and when will it start?', async ({ page }) => {
  await openLive(page, '/');
  // Click 1: Queue. Field 2: its name.
  await page
    .getByRole('navigation', { name: 'pages' })
    .getByRole('link', { name: 'Queue' })
    .click();
  await page.getByRole('searchbox').fill('asr-large');
  const row = page.locator('.body > .row');
  await expect(row).toHaveCount(1);
  await expect(row).toContainText('WaitingForGPU');
  await expect(row).toContainText('dell-3 has one in about 6 min');
});

test('who borrows, how much, and since when?', async ({ page }) => {
  await openLive(page, '/');
  // Click 1: Projects.
  await page
    .getByRole('navigation', { name: 'pages' })
    .getByRole('link', { name: 'Projects' })
    .click();
  const borrower = page.locator('.body > .row').filter({ hasText: 'vision' });
  await expect(borrower).toContainText('4.1');
  await expect(borrower).toContainText(/since/);
});

test("is my sweep better than yesterday's?", async ({ page }) => {
  await openLive(page, '/');
  // Click 1: Sweeps. The best of each stands beside the other's.
  await page
    .getByRole('navigation', { name: 'pages' })
    .getByRole('link', { name: 'Sweeps' })
    .click();
  const row = (name: string) => page.locator('.body > .row').filter({ hasText: name });
  await expect(row('hpo-yesterday')).toContainText('0.2398');
  await expect(row('hpo-sweep')).toContainText(/0\.\d+/);
});

test('what would one more node bring?', async ({ page }) => {
  await openLive(page, '/');
  // Click 1: Queue. Fields 2 and 3: which node, how many. Click 4: Plan.
  await page
    .getByRole('navigation', { name: 'pages' })
    .getByRole('link', { name: 'Queue' })
    .click();
  await page.getByLabel('each like').selectOption('dell-3');
  await page.getByLabel('more nodes').fill('1');
  await page.getByRole('button', { name: 'Plan' }).click();
  await expect(page.getByText(/would start at once/)).toBeVisible();
});

test('whom do I ask for half a GPU?', async ({ page }) => {
  await openLive(page, '/');
  // No click: who holds half a GPU or more without using it, and the command that gives it back.
  const idle = page.getByRole('region', { name: 'Held and not used' });
  const row = idle.locator('.row').filter({ hasText: 'vit-debug' });
  await expect(row.first()).toContainText('vision');
  await expect(idle.getByRole('button', { name: /^copy: kubectl/ }).first()).toBeVisible();
});
