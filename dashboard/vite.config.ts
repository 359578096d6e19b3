import { defineConfig } from 'vitest/config';

import { mock } from './mock/plugin.ts';

// The server sends these files as they are, with a policy that allows nothing from elsewhere and
// nothing within the page: so no inlined assets, and no polyfill that is a script of its own.
export default defineConfig({
  plugins: [mock()],
  cacheDir: '../build/dashboard-cache',
  build: {
    outDir: 'dist',
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
  preview: { host: '127.0.0.1', port: 4173, strictPort: true },
  server: { host: '127.0.0.1' },
  test: { include: ['tests/unit/**/*.test.{ts,tsx}'], environment: 'node' },
});
