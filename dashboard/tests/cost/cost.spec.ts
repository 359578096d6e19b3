import { control, open, test, tokenFor } from '../browse.ts';
import { measured, PATHS, SECONDS } from './measure.ts';

// A hundred changes a second to 1,000 GPUs and 10,000 jobs.
for (const path of PATHS) {
  test(`${path} with 1,000 GPUs and 10,000 jobs that change`, async ({ page }) => {
    test.setTimeout((SECONDS + 60) * 1000);
    const token = tokenFor('moving');
    await control(page, token, ''); // makes the world, which is none of the browser's time
    await measured(page, path, () => open(page, path, token));
  });
}
