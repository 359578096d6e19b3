// A picture of each page from the built Storybook, in light and dark, by this machine's Chromium;
// with ALL=1 of every story.
import { existsSync, mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

const BUILT = fileURLToPath(new URL('../../build/headlamp-storybook', import.meta.url));
const FOLDER =
  process.env.PICTURES ?? fileURLToPath(new URL('../../docs/pictures/headlamp', import.meta.url));
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json' };
// Links read the cluster off the address, so the stories are served below one.
const PREFIX = '/c/main';
const PAGES = [
  'job-list',
  'job-that-runs',
  'project-list',
  'use-of-gpus',
  'sweep-detail',
  'no-right',
];
const BROWSERS = ['chromium-headless-shell', 'chromium', 'google-chrome'];

const executablePath = (process.env.PATH ?? '')
  .split(':')
  .flatMap(folder => BROWSERS.map(name => `${folder}/${name}`))
  .find(existsSync);
if (!executablePath) throw new Error(`none of ${BROWSERS.join(', ')} is on the PATH`);

const server = createServer(async (request, response) => {
  const pathname = new URL(request.url, 'http://localhost').pathname.replace(PREFIX, '');
  try {
    const body = await readFile(join(BUILT, normalize(pathname)));
    response.writeHead(200, { 'content-type': TYPES[extname(pathname)] ?? 'font/woff2' });
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const address = `http://127.0.0.1:${server.address().port}`;

const stories = Object.values(
  JSON.parse(await readFile(join(BUILT, 'index.json'), 'utf8')).entries
);
const shown = stories.filter(
  ({ id }) => process.env.ALL || PAGES.includes(id.replace('pages--', ''))
);
const browser = await chromium.launch({ executablePath });
mkdirSync(FOLDER, { recursive: true });
let wrong = 0;
try {
  for (const { id } of shown) {
    for (const scheme of ['light', 'dark']) {
      const page = await browser.newPage({
        viewport: { width: 1280, height: 600 },
        colorScheme: scheme,
      });
      page.on('pageerror', error => {
        wrong += 1;
        console.error(`${id} ${scheme}: ${error}`);
      });
      await page.clock.setFixedTime(new Date('2026-03-12T14:14:00Z'));
      await page.goto(
        `${address}${PREFIX}/iframe.html?id=${id}&viewMode=story&globals=scheme:${scheme}`
      );
      await page.locator('.gpu-scheduler').waitFor();
      await page.evaluate(() => document.fonts.ready);
      const name = id.replace('pages--', '');
      await page.screenshot({ path: join(FOLDER, `${name}-${scheme}.png`), fullPage: true });
      await page.close();
    }
  }
} finally {
  await browser.close();
  server.close();
}
if (shown.length < PAGES.length || wrong > 0) process.exit(1);
