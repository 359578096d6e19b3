const path = require('path');

const headlamp = require('@kinvolk/headlamp-plugin/config/.storybook/main.js');

// Headlamp's own, with stories where this plugin has them, and without what answers for an API
// server: stories bring their objects.
module.exports = {
  ...headlamp,
  stories: ['../stories/*.stories.tsx'],
  addons: [],
  staticDirs: [],
  webpackFinal: async config => {
    const made = await headlamp.webpackFinal(config);
    // Packages are kept for all checkouts, and what the dashboard shares is beside this folder.
    made.resolve.modules = ['node_modules', path.resolve(__dirname, '../node_modules')];
    made.resolveLoader = {
      ...made.resolveLoader,
      modules: ['node_modules', path.resolve(__dirname, '../node_modules')],
    };
    // What is asked for as text is no style sheet.
    for (const rule of made.module.rules) {
      if (rule?.test instanceof RegExp && rule.test.test('a.css')) {
        rule.resourceQuery = { not: [/raw/] };
      }
    }
    made.module.rules.push({ resourceQuery: /raw/, type: 'asset/source' });
    made.module.rules.push({
      test: /\.tsx?$/,
      include: [path.resolve(__dirname, '..'), path.resolve(__dirname, '../../dashboard/src')],
      exclude: /node_modules/,
      use: {
        loader: require.resolve('swc-loader'),
        options: {
          jsc: {
            parser: { syntax: 'typescript', tsx: true },
            transform: { react: { runtime: 'automatic' } },
          },
        },
      },
    });
    return made;
  },
};
