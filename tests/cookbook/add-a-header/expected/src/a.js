// SPDX-License-Identifier: MIT
a();
