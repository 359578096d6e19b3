import { open, test } from '../browse.ts';
import { measured, PATHS, SECONDS } from '../cost/measure.ts';
import { ask, stand } from './stand.ts';

// Of the size that tests/dashboard/cost.py was told.
for (const path of PATHS) {
  test(`${path} of a real operator while work ends and comes`, async ({ page }) => {
    test.setTimeout((SECONDS + 60) * 1000);
    await ask(page, '/overview'); // the first picture after a while without a reader
    await measured(page, path, () => open(page, path, stand.tokens.all));
  });
}
