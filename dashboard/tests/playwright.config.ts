import { fileURLToPath } from 'node:url';

import { defineConfig } from '@playwright/test';

import { common } from './common.ts';

const PORT = Number(process.env['DASHBOARD_PORT'] ?? 4173);
const BASE = `http://127.0.0.1:${PORT}`;

export default defineConfig({
  ...common(BASE),
  testDir: '.',
  workers: 2,
  reporter: 'list',
  webServer: {
    command: `npx vite preview --port ${PORT}`,
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    url: `${BASE}/mock/control`,
    reuseExistingServer: false,
  },
  projects: [
    { name: 'checks', testDir: 'browser' },
    { name: 'look', testDir: 'look' },
    { name: 'cost', testDir: 'cost', workers: 1 },
  ],
});
