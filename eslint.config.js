import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["materia_nb/widgets/bundle/", "build/", "docs/site/", ".venv/", "node_modules/"] },
  js.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser, STYLES: "readonly" } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-properties": ["error", ...["innerHTML", "outerHTML", "insertAdjacentHTML"].map((property) => ({ property, message: "text becomes markup nowhere" }))],
      "no-shadow": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": ["error", { destructuring: "all" }],
    },
  },
];
