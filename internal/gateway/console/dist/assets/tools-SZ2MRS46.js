/* Licences of the libraries in this file: NOTICE.txt */
import{i as a,j as b,k as c}from"./chunk-BFS27OBQ.js";import"./chunk-3G3YPLMM.js";import"./chunk-QOXSNZ4G.js";import"./chunk-SWGYV5IY.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
