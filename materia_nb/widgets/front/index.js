/** Everything that is drawn in a page, by the name of the widget that it draws: one module, bundled by `make front`. */
import { castView, designView } from "./shell.js";
import canvas from "./canvas_widget.js";
import { castsView } from "./explorer.js";
import predict from "./predict.js";

/** The style sheets, which `make front` puts here. */
export const styles = STYLES;

export const widgets = { shell: { render: castView }, canvas, casts: { render: castsView }, design: { render: designView }, predict };
