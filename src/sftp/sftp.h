/*
 * SFTP sessions for the pool: what main() hands to pool_new(). The sessions speak SFTP version
 * 3 with OpenSSH's extensions over the streams that the connector opens.
 */
#ifndef MOORFS_SFTP_SFTP_H
#define MOORFS_SFTP_SFTP_H

#include <stdint.h>

#include "remote/session.h"
#include "transport/connector.h"

/*
 * `peer` ("user@host", for messages) is copied; the connector outlives the factory. `max_read`
 * and `max_write` bound the data of one request in bytes; 0: what the server allows. NULL when
 * memory is out. `create` of the factory may be called from any thread.
 */
struct session_factory *sftp_factory_new(struct connector *connector, const char *peer,
                                         uint32_t max_read, uint32_t max_write);

/* After all sessions are destroyed. NULL is allowed. */
void sftp_factory_free(struct session_factory *factory);

#endif
