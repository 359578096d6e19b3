import { readdirSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

import { test as base, expect } from '@playwright/test';

// Every page of the docs' site, light and dark, wide and narrow. One is wrong when it is wider than
// the screen, when a script complains, or when anything is asked of another host. Of all pages, each
// of NAMES is also typed into the search, which must have it among its first results.
const SITE = fileURLToPath(new URL('../../../build/site', import.meta.url));
const PAGES = new RegExp(`^${(process.env['PAGES'] ?? '*').replaceAll('*', '.*')}$`);
const PICTURES = process.env['PICTURES'];
const NAMES = JSON.parse(process.env['NAMES'] ?? '[]') as string[];
const SCHEMES = ['light', 'dark'] as const;
const HEIGHT = 900;
const TALLEST = 4000; // of a picture, pixels
const FIRST = 10; // results that a reader sees without another page of them

/** What was asked of other hosts: also by workers, style sheets and preconnects. */
const test = base.extend<object, { refused: string[] }>({
  refused: [[], { scope: 'worker' }],
  browser: [
    async ({ playwright, launchOptions, refused }, use) => {
      const proxy = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.once('data', (data) => {
          refused.push(data.toString().split('\r\n', 1)[0] ?? '');
          socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
        });
      });
      await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
      const server = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
      const browser = await playwright.chromium.launch({
        ...launchOptions,
        proxy: { server, bypass: '127.0.0.1' },
      });
      await use(browser);
      await browser.close();
      proxy.close();
    },
    { scope: 'worker' },
  ],
});

for (const name of readdirSync(SITE, { recursive: true, encoding: 'utf8' }).sort()) {
  if (!name.endsWith('.html') || !PAGES.test(name)) continue;
  test(name, async ({ page, refused }) => {
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    page.on('console', (said) => said.type() === 'error' && errors.push(said.text()));
    for (const width of [1400, 400]) {
      await page.setViewportSize({ width, height: HEIGHT });
      for (const scheme of SCHEMES) {
        const how = `${scheme}, ${width} wide`;
        await page.emulateMedia({ colorScheme: scheme });
        // The other scheme is a switch of the system, without a load.
        if (scheme === 'light') await page.goto(`/${name}`, { waitUntil: 'networkidle' });
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect.soft(over, `${how}: pixels wider than the screen`).toBeLessThanOrEqual(0);
        // The page takes the colours of the system by a script, soon after they change.
        await expect.soft.poll(() => page.evaluate(background), how).toBe(scheme);
        if (!PICTURES) continue;
        const tall = await page.evaluate(() => document.documentElement.scrollHeight);
        await page.screenshot({
          path: `${PICTURES}/${scheme}-${width}/${name}.png`,
          fullPage: true,
          clip: { x: 0, y: 0, width, height: Math.min(tall, TALLEST) },
        });
      }
    }
    expect.soft(errors, 'what scripts complain of').toEqual([]);
    expect.soft(refused.splice(0), 'asked of another host').toEqual([]);
  });
}

test('the search', async ({ page }) => {
  test.skip(NAMES.length === 0, 'for all pages only');
  await page.goto('/index.html', { waitUntil: 'networkidle' });
  const missed = await page.evaluate(search, { names: NAMES, first: FIRST });
  expect(missed, `not among the first ${FIRST}`).toEqual([]);
});

function background(): string {
  const found = getComputedStyle(document.body).backgroundColor.match(/\d+/g) ?? [];
  return found.slice(0, 3).reduce((sum, each) => sum + Number(each), 0) < 3 * 128
    ? 'dark'
    : 'light';
}

/** Those of the names that are no title of the first results. */
async function search({ names, first }: { names: string[]; first: number }): Promise<string[]> {
  const later = (ms: number) => new Promise((done) => setTimeout(done, ms));
  const root = () => [...document.querySelectorAll('*')].find((e) => e.shadowRoot)?.shadowRoot;
  const input = () => root()?.querySelector('input');
  for (let tries = 0; tries < 20 && !input(); tries++) {
    // A page that has just been opened does not listen yet.
    document.querySelector<HTMLElement>('label[for=__search], .md-search__button')?.click();
    await later(500);
  }
  const titles = () =>
    [...(root()?.querySelectorAll<HTMLElement>('a[role=option]') ?? [])]
      .slice(0, first)
      .map((a) => a.querySelector<HTMLElement>('h1,h2,h3,[id$=-title]') ?? a)
      .map((title) => title.innerText.trim().split('\n')[0]);
  const missed: string[] = [];
  for (const name of names) {
    const field = input();
    if (!field) return names;
    field.value = name;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    for (let tries = 0; tries < 60 && !titles().includes(name); tries++) await later(25);
    if (!titles().includes(name)) missed.push(name);
  }
  return missed;
}
