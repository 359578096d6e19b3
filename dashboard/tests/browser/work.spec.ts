import { expect, live, openLive, test } from '../browse.ts';

const JOB = '/jobs/vision/GPUJob/bert-finetune';

test('a job is suspended once one has said so twice, and can be resumed', async ({ page }) => {
  await openLive(page, JOB);
  await page.getByRole('button', { name: 'Suspend …' }).click();
  await expect(page.getByText('Its pods end, and 0.5 GPU come free.')).toBeVisible();
  await page.getByRole('button', { name: 'Suspend', exact: true }).click();
  await expect(page.locator('.facts').getByText('Suspended')).toBeVisible();
  await page.getByRole('button', { name: 'Resume …' }).click();
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await expect(page.getByText('Pending · WaitingForGPU')).toBeVisible();
});

test('what has ended, and what is no GPUJob, cannot be suspended', async ({ page }) => {
  await openLive(page, '/jobs/genomics/GPUJob/fold-10');
  await expect(page.getByRole('button', { name: /Suspend/ })).toHaveCount(0);
  await openLive(page, '/jobs/speech/Deployment/notebook-mk');
  await expect(page.getByRole('button', { name: /Suspend/ })).toHaveCount(0);
});

test('a log is read when one asks for it', async ({ page }) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await openLive(page, JOB);
  expect(asked.filter((url) => url.includes('/logs/'))).toEqual([]);
  await page.getByRole('button', { name: 'Read it' }).click();
  await expect(page.getByText('step 41220')).toBeVisible();
});

test('a command is copied by one click', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await openLive(page, JOB);
  await page.getByRole('button', { name: /^copy: kubectl gpu why/ }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    'kubectl gpu why bert-finetune -n vision',
  );
});

test('what one more node would bring is asked, and answered', async ({ page }) => {
  await openLive(page, '/queue');
  await page.getByLabel('each like').selectOption('dell-3');
  await page.getByLabel('more nodes').fill('2');
  await page.getByRole('button', { name: 'Plan' }).click();
  await expect(
    page.getByText('With 2 more like dell-3, 4 of 12 would start at once.'),
  ).toBeVisible();
});

test('a manifest that is none is refused in words', async ({ page }) => {
  await openLive(page, '/queue?whatif=job');
  await page.getByLabel('its YAML').fill('hello');
  await page.getByRole('button', { name: 'Plan' }).click();
  await expect(page.getByText('this is no object of Kubernetes')).toBeVisible();
});

test('two jobs are set side by side', async ({ page }) => {
  await openLive(page, JOB);
  await page.getByLabel('name of another job').fill('tts');
  await page
    .getByRole('region', { name: 'Beside another' })
    .getByRole('link', { name: 'tts-train' })
    .click();
  await expect(page).toHaveURL(/\/jobs\/compare\?a=vision.*&b=speech/);
  await live(page);
  await expect(page.getByRole('row', { name: /GPUs asked for 0.5 0.8/ })).toBeVisible();
});

test('times are told in the reader’s own zone, exactly when one points at them', async ({
  page,
}) => {
  await openLive(page, '/projects');
  const since = page.getByRole('row', { name: /vision/ }).locator('time');
  await expect(since).toHaveText('10:14');
  await expect(since).toHaveAttribute('title', /12 Mar 2026.*10:14:00 (CET|GMT\+1)/);
});
