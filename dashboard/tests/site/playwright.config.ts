import { fileURLToPath } from 'node:url';

import { defineConfig } from '@playwright/test';

import { common } from '../common.ts';

const PORT = Number(process.env['SITE_PORT'] ?? 4174);
const BASE = `http://127.0.0.1:${PORT}`;

// On the site of the docs, which `make docs` has built; `make docs-look` runs it.
export default defineConfig({
  ...common(BASE),
  testDir: '.',
  workers: 2,
  timeout: 300_000,
  reporter: 'dot',
  webServer: {
    command: `python3 -m http.server ${PORT} --bind 127.0.0.1 --directory build/site`,
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
    url: `${BASE}/index.html`,
    stderr: 'ignore', // a line for each file that is asked for
    reuseExistingServer: false,
  },
});
