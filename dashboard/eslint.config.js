import js from '@eslint/js';
import hooks from 'eslint-plugin-react-hooks';
import { defineConfig } from 'eslint/config';
import ts from 'typescript-eslint';

export default defineConfig(
  { ignores: ['dist/', 'node_modules', 'src/api/views.ts', '.results/'] },
  js.configs.recommended,
  ts.configs.strictTypeChecked,
  hooks.configs.flat['recommended-latest'],
  {
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ['eslint.config.js'] } },
    },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      // Names, messages and labels are others' text: React writes it as text, and nothing else may.
      'no-restricted-syntax': [
        'error',
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: 'Write text.' },
        { selector: "MemberExpression[property.name='innerHTML']", message: 'Write text.' },
        { selector: "MemberExpression[property.name='outerHTML']", message: 'Write text.' },
        {
          selector: 'MemberExpression[object.name=/^(local|session)Storage$/]',
          message: 'What the page knows it forgets; above all a token.',
        },
      ],
    },
  },
  { files: ['eslint.config.js'], extends: [ts.configs.disableTypeChecked] },
);
