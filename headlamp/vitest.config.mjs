import { realpathSync } from 'node:fs';

import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// Of Headlamp's own configuration for plugins without the polyfills of Node.js, which a test on
// Node.js needs none of, and which name a package that does not come with them.
export default defineConfig({
  plugins: [react()],
  // What is shared with the dashboard, and packages where they are kept for all checkouts.
  server: { fs: { allow: ['..', realpathSync('node_modules')] } },
  test: {
    include: ['tests/**/*.test.{ts,tsx}'],
    server: { deps: { inline: ['@kinvolk/headlamp-plugin'] } },
  },
});
