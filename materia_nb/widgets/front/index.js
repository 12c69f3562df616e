/** All widgets by name: one module, bundled by `make front`. */
import { castView, designView } from "./shell.js";
import canvas from "./canvas_widget.js";
import { castsView } from "./explorer.js";
import predict from "./predict.js";

/** The style sheets, inserted by `make front`. */
export const styles = STYLES;

export const widgets = { shell: { render: castView }, canvas, casts: { render: castsView }, design: { render: designView }, predict };
