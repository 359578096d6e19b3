import { violations } from '../axe.ts';
import { expect, live, open, test } from '../browse.ts';
import type { ChartView } from '../../src/api/views.ts';
import { ask, happen, openAs, stand } from './stand.ts';

test('the operator killed under open pages: they say since when, and come back by themselves', async ({
  page,
  context,
}) => {
  await openAs(page, '/projects');
  const other = await context.newPage();
  await openAs(other, '/jobs?q=train');
  const before = await ask<ChartView>(page, '/chart?span=1h');
  await happen('stop');
  for (const each of [page, other]) {
    await expect(each.getByRole('alert')).toHaveText(
      /^Connection lost since \d\d:\d\d\. What you see is from then\.$/,
    );
  }
  await expect(page.getByText('speech').first()).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await expect(other.locator('.body > .row')).toContainText('train');
  await happen('start');
  for (const each of [page, other]) {
    await live(each);
    await expect(each.getByRole('alert')).toHaveCount(0);
  }
  await expect(other.locator('.body > .row')).toContainText('train');
  await other.close();

  // What the chart showed is still there; its last step goes on.
  const after = await ask<ChartView>(page, '/chart?span=1h');
  const at = (chart: ChartView, index: number) => chart.start + index * chart.stepSeconds;
  const kept = before.held.flatMap((held, index) =>
    held === null || index >= before.held.length - 2 ? [] : [[at(before, index), held] as const],
  );
  expect(kept.length).toBeGreaterThan(0);
  for (const [moment, held] of kept) {
    const index = Math.round((moment - after.start) / after.stepSeconds);
    expect(after.held[index]).toBe(held);
  }
});

test('a page that is opened while nobody serves comes when somebody does', async ({ page }) => {
  await openAs(page, '/');
  await happen('stop');
  await expect(page.getByRole('alert')).toContainText('Connection lost');
  await page.getByRole('link', { name: 'Queue', exact: true }).first().click();
  await happen('start');
  await live(page);
  await expect(page.locator('.lead').first()).toHaveText(/ jobs wait/);
  await open(page, '/jobs', stand.tokens.reader);
  await live(page);
});
