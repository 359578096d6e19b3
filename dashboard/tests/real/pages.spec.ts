import { violations, withoutBarriers } from '../axe.ts';
import { expect, open, test } from '../browse.ts';
import type {
  GpusView,
  JobsView,
  ProjectsView,
  QueueView,
  SweepsView,
} from '../../src/api/views.ts';
import { ask, openAs, stand } from './stand.ts';

const compared = new URLSearchParams({
  a: 'vision/GPUJob/train',
  b: 'vision/GPUJob/notebook',
}).toString();

/** Every page; how its sentence begins, and something that only it says. */
const PATHS: readonly (readonly [path: string, sentence: RegExp, says: string])[] = [
  ['/', /^[\d.]+ of 8 GPUs are allocated, /, 'Where the GPUs are'],
  ['/?span=1h', /^[\d.]+ of 8 GPUs are allocated, /, 'Where the GPUs are'],
  ['/gpus', /^[\d.]+ of 8 GPUs (is|are) busy on four nodes\./, 'r7525-3'],
  ['/gpus?colour=memory', /^[\d.]+ of 8 GPUs (is|are) busy on four nodes\./, 'r7525-0'],
  ['/gpus/r7525-0/0', / of GPU 0 of r7525-0 is held|is held by nobody/, 'The device'],
  ['/queue', /^\w+ jobs wait, half of them for no longer than /, 'What if'],
  ['/jobs', /^\d+ run, \d+ wait, 1 is suspended\./, 'bert|train'],
  ['/jobs/vision/GPUJob/train', /^train runs on 0\.5 of GPU \d of r7525-0 for /, 'By kubectl'],
  ['/jobs/vision/GPUJob/notebook', /it has done nothing there for 3 h/, 'Beside another'],
  ['/jobs/vision/GPUJob/ddp', /^ddp runs on 2 GPUs of r7525-/, 'ddp-1'],
  ['/jobs/vision/GPUJob/done', /^done succeeded .* ago\./, 'From submission to its end'],
  ['/jobs/vision/GPUJob/huge', /^huge has waited /, 'Unsatisfiable'],
  ['/jobs/speech/Deployment/api', /^api runs on /, 'kubectl gpu why deployment/api'],
  ['/jobs/speech/Pod/shell', /^shell runs on 0\.1 of GPU /, 'kubectl gpu why pod/shell'],
  [`/jobs/compare?${compared}`, /^train beside notebook\./, 'What tells them apart'],
  ['/projects', /^Three projects hold [\d.]+ GPUs of 6\.5 guaranteed\./, 'guests'],
  ['/projects/speech', /^speech holds [\d.]+ of its quota of 1, and may hold 2\./, 'asr'],
  ['/sweeps', /^One sweep runs, with two trials on GPUs\./, 'search'],
  ['/sweeps/vision/search', /^search has so far ended 2 of 4 trials\./, 'What failed last'],
];

for (const [path, sentence, says] of PATHS) {
  test(`${path} says its sentence and what it is there for, without barriers`, async ({ page }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await openAs(page, path);
    await expect(page.locator('.lead').first()).toHaveText(sentence);
    await expect(page.getByText(new RegExp(says)).first()).toBeVisible();
    await withoutBarriers(page);
  });
}

test('an address that is none says so', async ({ page }) => {
  await open(page, '/nothing/here', stand.tokens.all);
  await expect(page.getByText('There is no such page').first()).toBeVisible();
  expect(await violations(page)).toEqual([]);
});

test('a job that is not there is told from a page that is not there', async ({ page }) => {
  await open(page, '/jobs/vision/GPUJob/never', stand.tokens.all);
  await expect(page.getByText('It may have been deleted').first()).toBeVisible();
});

test('each list has a row for all that the server knows', async ({ page }) => {
  const jobs = await ask<JobsView>(page, '/jobs');
  const queue = await ask<QueueView>(page, '/queue');
  const sweeps = await ask<SweepsView>(page, '/sweeps');
  const projects = await ask<ProjectsView>(page, '/projects');
  const named = (rows: readonly { ref: { name: string } }[]) => rows.map((row) => row.ref.name);
  for (const [path, names] of [
    ['/jobs', named(jobs.rows)],
    ['/queue', named(queue.rows)],
    ['/sweeps', named(sweeps.rows)],
    ['/projects', projects.rows.map((row) => row.name)],
  ] as const) {
    expect(names.length).toBeGreaterThan(0);
    await openAs(page, path);
    const rows = page.locator('.body > .row');
    await expect(rows).toHaveCount(names.length);
    for (const name of names) {
      await expect(rows.getByText(name, { exact: true }).first()).toBeVisible();
    }
  }
});

test('each GPU is a box, and the shut node says why', async ({ page }) => {
  const gpus = await ask<GpusView>(page, '/gpus');
  await openAs(page, '/gpus');
  const devices = gpus.nodes.flatMap((node) => node.devices);
  expect(devices).toHaveLength(8);
  await expect(page.locator('a[data-box]')).toHaveCount(devices.length);
  await expect(page.getByText('cordoned').first()).toBeVisible();
});

test('the operator sends the policy that keeps pages from all others', async ({ page }) => {
  const response = await page.goto('/');
  const headers = response?.headers() ?? {};
  expect(headers['content-security-policy']).toContain("default-src 'none'");
  expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
  expect(headers['set-cookie']).toBeUndefined();
});
