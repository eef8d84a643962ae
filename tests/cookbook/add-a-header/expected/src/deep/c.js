// SPDX-License-Identifier: MIT
c();
d();
