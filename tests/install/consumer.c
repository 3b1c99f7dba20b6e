/* What an outside program does with the installed library: includes the one header, calls across the boundary. Valid
 * as C17 and as C++17. Grows with the API only where linking needs a proof. */
#include <tidemark/tidemark.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    if (strcmp(tide_status_name(TIDE_E_FIT), "TIDE_E_FIT") != 0) return 1;
    if (tide_status_exit_code(TIDE_E_FIT) != 4) return 1;
    if (tide_last_error()[0] != '\0') return 1;
    printf("%s\n", tide_version());
    return 0;
}
