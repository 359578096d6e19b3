import { expect, test } from '../browse.ts';
import { happen, openAs, stand } from './stand.ts';

const row = '.body > .row';

test('a job that is submitted appears in an open page, and goes from it, without a reload', async ({
  page,
}) => {
  await openAs(page, '/jobs?q=newcomer');
  await expect(page.getByText('No job is like that.')).toBeVisible();
  const opened: string[] = [];
  page.on('framenavigated', (frame) => opened.push(frame.url()));
  await happen('submit', { namespace: 'vision', name: 'newcomer', spec: { gpu: 0.01 } });
  await expect(page.locator(row)).toContainText('newcomer');
  await expect(page.locator(row)).toContainText('Running');
  await happen('remove', { namespace: 'vision', name: 'newcomer' });
  await expect(page.locator(row)).toHaveCount(0);
  expect(opened).toEqual([]);
});

test('who may, suspends a job from its page and resumes it; the object shows it', async ({
  page,
}) => {
  const job = { namespace: 'vision', name: 'switched' };
  const suspended = async () =>
    (await happen<{ spec: { suspend?: boolean } }>('job', job)).spec.suspend ?? false;
  await happen('submit', { ...job, spec: { gpu: 0.01 } });
  await openAs(page, '/jobs/vision/GPUJob/switched', 'editor');
  await page.getByRole('button', { name: 'Suspend …' }).click();
  await page.getByRole('button', { name: 'Suspend', exact: true }).click();
  await expect(page.locator('.lead').first()).toHaveText(/^switched is suspended\./);
  expect(await suspended()).toBe(true);
  await page.getByRole('button', { name: 'Resume …' }).click();
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await expect(page.locator('.lead').first()).toHaveText(/^switched runs on /);
  expect(await suspended()).toBe(false);
  await happen('remove', job);
});

test('who may not is told so in the words of the API server, and nothing is changed', async ({
  page,
}) => {
  await openAs(page, '/jobs/vision/GPUJob/train', 'reader');
  await page.getByRole('button', { name: 'Suspend …' }).click();
  await page.getByRole('button', { name: 'Suspend', exact: true }).click();
  await expect(page.locator('main').getByRole('alert')).toContainText('cannot patch');
  await expect(page.locator('.lead').first()).toHaveText(/^train runs on /);
});

test('one more node, another quota and a job that is not there yet are planned on what there is', async ({
  page,
}) => {
  await openAs(page, '/queue');
  await page.getByLabel('each like').selectOption('r7525-1');
  await page.getByLabel('more nodes').fill('1');
  await page.getByRole('button', { name: 'Plan' }).click();
  const answer = page.locator('main [role="status"]').last();
  await expect(answer).toContainText('1 more job would start now, with 2 GPUs.');
  await expect(answer.getByRole('row', { name: /starts now/ })).toHaveCount(1);

  // The same user's, so one after the other: the server plans one at a time for each.
  await openAs(page, '/queue?whatif=quota');
  await page.getByLabel('of the project').selectOption('speech');
  await page.getByLabel('of so many GPUs').fill('3');
  await page.getByRole('button', { name: 'Plan' }).click();
  await expect(answer).toHaveText('quota: the limit of speech is 2 GPUs, which is less');
  await page.getByLabel('of so many GPUs').fill('2');
  await page.getByRole('button', { name: 'Plan' }).click();
  await expect(answer.locator('.answer')).toBeVisible();
  await openAs(page, '/queue?whatif=job');
  const manifest = [
    'apiVersion: gpu-scheduler.io/v1alpha1',
    'kind: GPUJob',
    'metadata: {name: would-be, namespace: vision}',
    `spec: {image: ${JSON.stringify(stand.evil)}, gpu: 0.01}`,
  ].join('\n');
  await page.getByLabel('its YAML').fill(manifest);
  await page.getByRole('button', { name: 'Plan' }).click();
  await expect(answer).toContainText('would-be');
  await page.getByLabel('its YAML').fill('hello');
  await page.getByRole('button', { name: 'Plan' }).click();
  await expect(page.getByText(/paste a GPUJob|cannot be read/)).toBeVisible();
});
