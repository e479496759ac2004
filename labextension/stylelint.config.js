export default {
  extends: ['stylelint-config-standard'],
  ignoreFiles: ['node_modules/**', 'lib/**'],
  rules: {
    'selector-class-pattern': null, // JupyterLab's classes are jp-Name-part
    'custom-property-pattern': null,
    'no-descending-specificity': null,
  },
};
