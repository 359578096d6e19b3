import { existsSync } from 'node:fs';

const NAMES = ['chromium-headless-shell', 'chromium', 'google-chrome', 'chrome'];

/** The machine's own Chromium: Playwright's would have to be fetched from elsewhere. */
export function chromium(): string {
  const folders = (process.env['PATH'] ?? '').split(':');
  for (const name of NAMES) {
    const found = folders.map((folder) => `${folder}/${name}`).find(existsSync);
    if (found) return found;
  }
  throw new Error(
    `none of ${NAMES.join(', ')} is on the PATH: apt-get install chromium-headless-shell`,
  );
}
