import { fileURLToPath } from 'node:url';

import { defineConfig } from '@playwright/test';

import { chromium } from './chromium.ts';

const PORT = Number(process.env['DASHBOARD_PORT'] ?? 4173);

export default defineConfig({
  testDir: '.',
  outputDir: '../.results',
  fullyParallel: true,
  workers: 2,
  forbidOnly: !!process.env['CI'],
  reporter: 'list',
  timeout: 30_000,
  use: {
    baseURL: `http://127.0.0.1:${PORT}`,
    timezoneId: 'Europe/Berlin',
    locale: 'en-GB',
    viewport: { width: 1440, height: 900 },
    launchOptions: {
      executablePath: chromium(),
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-background-networking',
        '--no-first-run',
        '--font-render-hinting=none',
      ],
      env: {
        ...(process.env as Record<string, string>),
        FONTCONFIG_FILE: fileURLToPath(new URL('./fonts.conf', import.meta.url)),
      },
    },
  },
  webServer: {
    command: `npx vite preview --port ${PORT}`,
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    url: `http://127.0.0.1:${PORT}/mock/control`,
    reuseExistingServer: false,
  },
  projects: [
    { name: 'checks', testDir: 'browser' },
    { name: 'look', testDir: 'look' },
    { name: 'cost', testDir: 'cost', workers: 1 },
  ],
});
