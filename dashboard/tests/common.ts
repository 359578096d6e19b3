import { fileURLToPath } from 'node:url';

import type { PlaywrightTestConfig } from '@playwright/test';

import { chromium } from './chromium.ts';

/** What all browser tests have in common, whatever serves the pages. */
export function common(baseURL: string): PlaywrightTestConfig {
  return {
    outputDir: fileURLToPath(new URL('../.results', import.meta.url)),
    fullyParallel: true,
    forbidOnly: !!process.env['CI'],
    timeout: 30_000,
    use: {
      baseURL,
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
  };
}
