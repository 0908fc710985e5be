// Starts the page.

import { ReviewPage } from "./deciding.js";

new ReviewPage().start();
