const path = require('path');

const headlamp = require('@kinvolk/headlamp-plugin/config/.storybook/main.js');

// Headlamp's own, with stories where this plugin has them, and without what answers for an API
// server: stories bring their objects.
module.exports = {
  ...headlamp,
  stories: ['../stories/*.stories.tsx'],
  addons: ['@storybook/addon-webpack5-compiler-swc'],
  staticDirs: [],
  webpackFinal: async config => {
    const made = await headlamp.webpackFinal(config);
    // Packages are kept for all checkouts, and what the dashboard shares is beside this folder.
    made.resolve.modules = [path.resolve(__dirname, '../node_modules'), 'node_modules'];
    made.resolveLoader = {
      ...made.resolveLoader,
      modules: [path.resolve(__dirname, '../node_modules'), 'node_modules'],
    };
    return made;
  },
};
