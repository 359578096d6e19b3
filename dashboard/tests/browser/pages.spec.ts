import { violations, withoutBarriers } from '../axe.ts';
import { expect, openLive, test } from '../browse.ts';
import { PATHS } from '../paths.ts';
import { POLICY } from '../../mock/plugin.ts';

for (const [path, says] of PATHS) {
  test(`${path} says what it is there for, in both schemes without barriers`, async ({ page }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    if (says === 'There is no such page') await page.goto(`${path}#token=cluster`);
    else await openLive(page, path);
    await expect(page.getByText(says).first()).toBeVisible();
    await withoutBarriers(page);
  });
}

for (const [world, says] of [
  ['empty', 'No node has GPUs that the scheduler knows of.'],
  ['unused', 'Nothing runs and nothing waits: all GPUs are free.'],
  ['unfollowed', 'Agents are not asked what GPUs do'],
  ['silent', '2 agents say nothing any more'],
  [
    'tenant',
    'You see the work in speech; what runs elsewhere is counted in the sums here, without names.',
  ],
] as const) {
  test(`a cluster that is ${world} says so, and what to do`, async ({ page }) => {
    await openLive(page, '/', world);
    await expect(page.getByText(says)).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });
}

test('the pages hold under the policy that the operator sends', async ({ page }) => {
  const response = await page.goto('/');
  expect(response?.headers()['content-security-policy']).toBe(POLICY);
});

test('a reader who sees one namespace is shown no name from another', async ({ page }) => {
  await openLive(page, '/gpus', 'tenant');
  const names = await page.locator('.names').allTextContents();
  expect(names.join(' ')).not.toMatch(/bert|vit|fold|gan|slam/);
  expect(names.join(' ')).toContain('others');
});
